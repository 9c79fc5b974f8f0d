"""A demo page: you pick one of three posters at a time, and see what has been learnt about your taste."""
