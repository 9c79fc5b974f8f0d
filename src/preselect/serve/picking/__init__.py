"""A page on which you are the one who picks: three posters at a time, and what has been learnt of your taste."""
