"""A wheel is the library alone. The book works in a clone, where `pip install -e .` finds both packages."""

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildLibrary(build_py):
    """Leaves the book out of what is not installed from a clone as it stands."""

    def run(self):
        if not self.editable_mode:
            self.packages = [name for name in self.packages if name.partition(".")[0] == "mia_lib"]
        super().run()


setup(cmdclass={"build_py": BuildLibrary})
