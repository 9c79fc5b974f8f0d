import hypothesis

# Numbers are drawn alike in every run, and a first call may have to compile.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
hypothesis.settings.load_profile("repeatable")
