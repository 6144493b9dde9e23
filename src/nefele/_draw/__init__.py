"""Layouts and drawing, shared by the report and by plots of theory and of graphs."""
