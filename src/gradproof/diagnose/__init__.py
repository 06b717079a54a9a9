"""What kind of mistake it is: small recognisers, each a pure function from an exhibit to a diagnosis or None."""
