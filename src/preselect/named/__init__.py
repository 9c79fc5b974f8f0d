"""What a `Preselector` is made of: arms and features that have names.

`state` holds what it knows, `arms` lets arms join, change and leave, and `readable_state` adds what can be asked of it;
`preselect.preselector` puts choosing and learning on top. Below them: `roster` gives every arm its slot, `terms` its
group and price, `values` reads features, `feedback` outcomes; `decision`, `estimates` and `explanations` are what
callers get.
"""
