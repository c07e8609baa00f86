"""The operator's pages at /: made on the server over `operations`, live where browsers run scripts.

A further page is a file of `pages/` with a `Page` in the table of `pages/__init__.py`, a template
in `templates/` that extends `base.html`, and its words in `texts.toml`. The function of a page gets
what is `Asked` and gives what is `Shown`; that of a form makes a change by an operation and tells
where to go on (`Redirect`). Forms are POSTs with `{{ hidden() }}` of `macros.html`, which has the
token of the session; regions with `data-live="NAME"` follow what happens.
"""
