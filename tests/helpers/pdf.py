"""The text of the PDF files that Chromium writes: page by page, in the order in which it is drawn."""

import re
import zlib

__all__ = ["pages_of"]


def pages_of(data):
    """The text of each page, without white space, for a line may end anywhere."""
    objects = dict(re.findall(rb"(?s)\n(\d+) 0 obj\n(.*?)\nendobj", data))
    fonts = {}
    for page in objects.values():
        if page.startswith(b"<</Type /Page\n"):
            named = re.findall(rb"/(F\d+) (\d+) 0 R", page)
            fonts |= {font: _characters(objects, objects[font]) for _, font in named if font not in fonts}
            drawn = _stream(objects[re.search(rb"/Contents (\d+) 0 R", page)[1]])
            yield "".join("".join(_text(drawn, {name: fonts[font] for name, font in named})).split())


def _stream(content):
    return zlib.decompress(content.partition(b"stream\n")[2].removesuffix(b"\nendstream"))


def _text(drawn, fonts):
    characters = {}
    for font, glyphs in re.findall(rb"/(F\d+) \S+ Tf|<([0-9A-F]+)>", drawn):
        characters = fonts[font] if font else characters
        yield from (characters[glyphs[at : at + 4]] for at in range(0, len(glyphs), 4))


def _characters(objects, font):
    """What each glyph of a font stands for."""
    table = _stream(objects[re.search(rb"/ToUnicode (\d+) 0 R", font)[1]])
    found = {}
    for first, last, start in re.findall(rb"<(\w{4})> (?:<(\w{4})> )?<(\w+)>(?=\n)", table):
        text = bytes.fromhex(start.decode()).decode("utf-16-be")
        for at in range(int(last or first, 16) - int(first, 16) + 1):
            found[b"%04X" % (int(first, 16) + at)] = text[:-1] + chr(ord(text[-1]) + at)
    return found
