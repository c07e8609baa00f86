"""What makes repeated requests cheap (docs/request-templates.md); no other room needs it."""
