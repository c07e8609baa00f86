"""Each way by which repeated requests come in or leave."""
