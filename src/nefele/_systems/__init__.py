"""Linear systems over a graph: by conjugate gradients, by factors, along trees."""
