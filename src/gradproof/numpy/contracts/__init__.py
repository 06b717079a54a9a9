"""What is asked of derivatives that were written by hand, whatever their numbers."""
