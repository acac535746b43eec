"""The page that shows the experiments of a paper beside what the paper prints."""
