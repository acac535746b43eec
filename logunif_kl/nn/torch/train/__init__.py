"""The training objective, and what training needs."""
