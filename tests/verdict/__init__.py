"""The verdict under attack: distortions of runs, each with a ground truth of its own."""
