"""Builds the record decoder where there are Cython and a C compiler; without, its twin serves."""

from pathlib import Path

from setuptools import Extension, setup

SOURCE = Path("src/runnel/native/_records.pyx")


def extensions() -> list[Extension]:
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    decoder = Extension(
        "runnel.native._records", [str(SOURCE)], extra_compile_args=["-O3"], optional=True
    )
    built: list[Extension] = cythonize([decoder])  # type: ignore[no-untyped-call]  # Cython's
    return built


setup(ext_modules=extensions())
