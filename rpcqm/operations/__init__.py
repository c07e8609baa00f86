"""What operators and programs do: each with the identity of who asks, which is checked."""
