"""What pyproject.toml cannot say: the version is that of gua, and a wheel carries libgua if it has been built.

Without a built library the wheel is pure Python, and the package looks for an installed libgua."""
import os
import pathlib
import re
import shutil
import sysconfig

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel  # from setuptools 70 on
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

TOP = pathlib.Path(__file__).resolve().parent.parent
LIBRARY = pathlib.Path(os.environ.get("GUA_LIBRARY", TOP / "build" / "libgua.so.0"))
VERSION = re.search(r"^  version: '([0-9.]+)',$", (TOP / "meson.build").read_text(), re.MULTILINE).group(1)


class WithPlatform(Distribution):
    def has_ext_modules(self):
        """A library makes it a package of this platform."""
        return LIBRARY.exists()


class WithLibrary(build_py):
    def run(self):
        super().run()
        if LIBRARY.exists():
            shutil.copyfile(LIBRARY, pathlib.Path(self.build_lib, "gua", "libgua.so.0"))


class ForPlatform(bdist_wheel):
    def get_tag(self):
        """Any Python 3: the library is loaded with ctypes, so that it knows nothing of the interpreter."""
        if self.root_is_pure:
            return "py3", "none", "any"
        return "py3", "none", re.sub(r"[-.]", "_", sysconfig.get_platform())


setup(version=VERSION, distclass=WithPlatform, cmdclass={"build_py": WithLibrary, "bdist_wheel": ForPlatform})
