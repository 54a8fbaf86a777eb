"""An exploration as plain data: reading, drawing, running its C++, exporting, saving and showing. Nothing needs TVM."""
