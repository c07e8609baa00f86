"""The ways by which repeated requests come in or leave."""
