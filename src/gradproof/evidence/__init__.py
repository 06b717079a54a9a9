"""How much is looked at: every entry of the Jacobian, or random combinations of all of them."""
