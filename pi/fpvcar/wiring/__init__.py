"""Which wire goes where: a car's profile as parts, wires, tables and a drawing."""
