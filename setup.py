"""Builds the record decoder where there are Cython and a C compiler; without, its twin serves."""

from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("src/runnel/native/_records.pyx")


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    decoder = Extension("runnel.native._records", [str(SOURCE)], extra_compile_args=["-O3"])
    built: list[Extension] = cythonize([decoder])  # type: ignore[no-untyped-call]  # Cython's
    for extension in built:
        extension.optional = True  # set here because cythonize makes extensions of its own
    return built


setup(ext_modules=extensions())
