"""Makes repeated requests cheap (docs/request-templates.md); no other room needs this one."""
