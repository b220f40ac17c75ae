"""Code for a process in which PyTorch is not there."""

# A finder, not sys.modules["torch"] = None: scipy looks into sys.modules and would take None for a module.
WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
"""
