#!/usr/bin/env python3
"""wordpiece.py DATA > wordpiece.h: golden values for tests/data/data_wordpiece.c from Hugging Face's tokenizers, which share
no code with this project: their normaliser, pre-tokeniser and greedy pieces of an uncased BERT. DATA holds
bert-base-uncased/vocab.txt and wikitext-2/wiki.{train,valid,test}.tokens (sh scripts/fetch-data.sh bertvocab, wikitext2).

Per file: the pieces of all lines, how many and the CRC-32 of their numbers as little-endian int32. Then strings, each
with its numbers. What the two differ in is not in them: code points that Unicode got after version 8, whose
categories that library does not know, and U+2B820 to U+2B91F, which BERT takes for ideographs and that library does not.
Last run with tokenizers 0.23.3."""

import struct
import sys
import zlib

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

STRINGS = [
    "",
    "   \t\n\r ",
    "Hello, World!",
    "unaffable transformerization of Tokenisers",
    "The <unk> of 1 @.@ 5 @-@ inch , 10 @,@ 000 .",
    "[MASK] [CLS] [SEP] [PAD] [UNK] [mask] ##ing",
    "don't stop-believing... (really?!) $3.50 ~`^|<>=+",
    "H\u00e9llo w\u00f6rld \u00c5ngstr\u00f6m na\u00efve fa\u00e7ade \u0141\u00f3d\u017a \u00d8re \u00df \u1e9e",
    "e\u0301 o\u0308\u0323 a\u0323\u0302 \u1ec7 s\u0323\u0307 \u1e69",
    "Vi\u1ec7t Nam \u0110\u1ed3ng \u01a1\u01b0",
    "\u0130stanbul \u0131\u015f\u0131k D\u0130YARBAKIR I\u0307",
    "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u039f\u0394\u039f\u03a3 \u1f08\u03b8\u1fc6\u03bd\u03b1\u03b9 \u03ac\u037e\u0387\u1fef",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u0419\u043e\u0433\u0443\u0440\u0442 \u0401\u043b\u043a\u0430 \u0457",
    "\u05e9\u05dc\u05d5\u05dd \u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f \u061f \u060c",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0915\u093c\u0964 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22",
    "\u4e2d\u6587\u5b57 abc\u6f22\u5b57def \u3000\u65e5\u672c\u8a9e\u3002\u300c\u300d",
    "\u3072\u3089\u304c\u306a \u30ab\u30bf\u30ab\u30ca \u30ac\u30d1 \u304b\u3099",
    "\uff21\uff22\uff23\uff11\uff12\uff0c\uff01 \uff76\uff9e",
    "\ud55c\uad6d\uc5b4 \uac00\uac01 \u1112\u1161\u11ab",
    "\uf900\ufa0e\U00020000\U0002a6d6\U0002f800 x\U0002f9ffy",
    "a\u3400\u3400b\u4dbf\u4dbfc\u4e00\u4e00d\u9fff\u9fffe\uf900\uf900f\ufaff\ufaffg\U00020000\U00020000h\U0002a6d6\U0002a6d6i",
    "a\U0002a700\U0002a700b\U0002b734\U0002b734c\U0002b740\U0002b740d\U0002b81d\U0002b81de\U0002b920\U0002b920f\U0002cea1\U0002cea1g"
    "\U0002f800\U0002f800h\U0002fa1d\U0002fa1di\u33ff\u33ffj\ua000\ua000k",
    "\U0001f600 ok\U0001f44d\U0001f3fd \u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467 \u00a9 \u2122",
    "zero\u200bwidth zw\u200cnj zw\u200dj wj\u2060 \ufeffbom soft\u00adhyphen",
    "\u202eright to left\u202c \u200emark\u200f",
    "nul\0byte bell\x07 \x0bvertical\x0cfeed del\x7f nel\u0085 fs\x1cgs\x1d us\x1f",
    "no\u00a0break\u2003em\u202fnarrow\u3000wide\u1680ogham\u2028line\u2029par",
    "\ufffd repl\ufffdaced \ue000priv\uf8ffate",
    "\ufb01ne \ufb00 \ufb03 \ufb04 \u0132 \u01c4 \u01c5 \u0152uvre \u00c6on \u1e9a",
    "x\u00b2 H\u2082O \u00bd \u2167 \u2460 \u212b \u2126 \u212a \u00b5 \u03bc",
    "\u201cquotes\u201d \u2018single\u2019 \u00abguillemets\u00bb \u2026 \u2013 \u2014 \u2010 \u2011 \u2212 \u00b7 \u2022 \u00a7 \u00b6 \u00bf\u00a1",
    "\u20ac100 \u00a345 \u00a510 \u20b9 5\u00b0 \u00b1 \u00d7 \u00f7 \u221e \u2192 \u2500",
    "a" * 100,
    "a" * 101,
    "b" * 99 + " " + "c" * 150 + "." + "d" * 3,
    "\u00e9" * 100 + " " + "\u00e9" * 101,
    "\ud55c" * 33 + " " + "\ud55c" * 34,
    "pneumonoultramicroscopicsilicovolcanoconiosis Donaudampfschifffahrtsgesellschaft",
    "http://www.example.com/path?q=1&r=2#top user@example.org",
    "a_b-c/d\\e{f}[g](h)\"i'j;k:l",
    "\U0001d15e \U0001d160 \U0001d157\U0001d165 \u302e\U0001d165x \U0001d165\u302ey",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035a\u032f\u031e\u0320\u034dalgo",
    "\u0344 \u0958 \u0f43 \u0f77 \u1fbe \u2adc \u0340x\u0341",
    "\u0378 un\u0379assigned \U000e0001tag",
    "\u00aa \u00ba \u02bc \u02c6 \u0374 \u1d2c \u2071",
]


def tokenizer(path):
    t = Tokenizer(WordPiece.from_file(path, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
    t.pre_tokenizer = BertPreTokenizer()
    return t


def file_line(t, folder, split):
    with open(f"{folder}/wikitext-2/wiki.{split}.tokens", encoding="utf-8", newline="\n") as f:
        lines = f.read().split("\n")
    count, crc = 0, 0
    for i in range(0, len(lines), 1000):
        for e in t.encode_batch(lines[i : i + 1000]):
            count += len(e.ids)
            crc = zlib.crc32(struct.pack(f"<{len(e.ids)}i", *e.ids), crc)
    return f'    {{"wiki.{split}.tokens", {count}, 0x{crc:08x}}},'


def quoted(text):
    """As a C string; a \\x in it is parted from a digit behind it."""
    out = ""
    for b in text.encode():
        if 32 <= b < 127 and chr(b) not in '"\\?':
            out += ('""' if out[-4:-2] == "\\x" and chr(b) in "0123456789abcdefABCDEF" else "") + chr(b)
        else:
            out += f"\\x{b:02x}"
    return f'"{out}"'


def main():
    t = tokenizer(f"{sys.argv[1]}/bert-base-uncased/vocab.txt")
    print("/* wordpiece.h: made by tests/golden/wordpiece.py with Hugging Face's tokenizers; see there. */")
    print("#ifndef ST_TESTS_GOLDEN_WORDPIECE_H\n#define ST_TESTS_GOLDEN_WORDPIECE_H\n")
    print("#include <stddef.h>\n#include <stdint.h>\n")
    print("static const struct {\n    const char *file;\n    size_t pieces;\n    uint32_t crc; /* of their numbers, as int32 */")
    print("} golden_files[] = {")
    for split in ("train", "valid", "test"):
        print(file_line(t, sys.argv[1], split))
    print("};\n\nenum { GOLDEN_PIECES_MAX = %d };" % max(len(t.encode(s).ids) for s in STRINGS))
    print("static const struct {\n    size_t bytes;\n    const char *text;\n    size_t pieces;\n    int32_t id[GOLDEN_PIECES_MAX];")
    print("} golden_strings[] = {")
    for s in STRINGS:
        ids = t.encode(s).ids
        print(f"    {{{len(s.encode())}, {quoted(s)}, {len(ids)}, {{{', '.join(map(str, ids)) or 0}}}}},")
    print("};\n\n#endif")


if __name__ == "__main__":
    main()
