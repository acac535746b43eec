"""What the layers of all frameworks compute alike: posteriors and penalties."""
