"""The numeric side: derivatives from function values alone, each with its own error bar."""
