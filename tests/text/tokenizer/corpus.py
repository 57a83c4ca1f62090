# Part of the llamac project, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lines of text that are hard to tokenize, the same ones every time.

`lines()` gives text; `broken_lines()` gives bytes that are not UTF-8.
"""

import random
import sys
import unicodedata

# A tilde is a line break.
SENTENCES = """\
The quick brown fox jumps over the lazy dog.
Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.
Portez ce vieux whisky au juge blond qui fume; ça n'arrive qu'à l'œuvre!
El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío, ¿no?
Pchnąć w tę łódź jeża lub ośm skrzyń fig.
Příliš žluťoučký kůň úpěl ďábelské ódy.
Árvíztűrő tükörfúrógép, hétfőn.
Şoföre yazılan İstanbul'dan ığdırlı çocuk.
Съешь же ещё этих мягких французских булок, да выпей чаю.
Жебракують філософи при ґанку церкви в Гадячі, ще й шатро їхнє п'яне знаємо.
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.
דג סקרן שט בים מאוכזב ולפתע מצא לו חברה.
نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر.
برای آزمودن می‌نویسیم که این متن نیم‌فاصله دارد.
ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश।
আমার সোনার বাংলা, আমি তোমায় ভালোবাসি।
தமிழ் மொழி மிகவும் பழமையான மொழி.
తెలుగు భాష చాలా మధురమైనది.
ਪੰਜਾਬੀ ਬੋਲੀ ਬਹੁਤ ਮਿੱਠੀ ਹੈ।
เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน
ພາສາລາວ ແມ່ນພາສາທາງການ
ខ្ញុំអាចញ៉ាំកញ្ចក់បាន ដោយគ្មានបញ្ហា
မြန်မာဘာသာစကား လှပသည်။
いろはにほへと ちりぬるを、色は匂へど散りぬるを。カタカナ・ﾊﾝｶｸ
視野無限廣，窗外有藍天；我能吞下玻璃而不伤身体。
키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.
ქართული ენა მშვენიერია.
Հայոց լեզուն գեղեցիկ է։
አማርኛ የኢትዮጵያ ቋንቋ ነው።
ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏂᏴᏫᏯᎢ
ᐃᓄᒃᑎᑐᑦ ᐅᖃᐅᓯᖅ
Монгол хэл ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ
བོད་སྐད་ནི་སྙན་པོ་ཡིན།
සිංහල භාෂාව ලස්සනයි.
Tiếng Việt có rất nhiều dấu thanh phức tạp.
𝕋𝕙𝕖 𝓺𝓾𝓲𝓬𝓴 𝖇𝖗𝖔𝖜𝖓 𝙛𝙤𝙭 Ⅳ ½ ² ³ ① ⑳ ㊿ ⅻ
🇩🇪🇫🇷🇯🇵 👨‍👩‍👧‍👦 👩🏽‍🚀 🏳️‍🌈 ❤️‍🔥 🤷🏿‍♀️ 1️⃣#️⃣ 😀😃😄
I'm sure they'll say we've won, it's what he'd do; you're right, isn't it? I'M THEY'LL WE'VE IT'S HE'D YOU'RE ISN'T
’s ’t don’t 'Twas 'Tis rock'n'roll O'Neill 'S 'Ll 'rE 'vE 'ſt 'Dd''s'''t
for (int i = 0; i < n; ++i) { a[i] += b[i] * 0x1F; } // sum\tof\tproducts
def f(self, *args, **kwargs) -> Optional[int]:  return self._x if args else None
SELECT id, COUNT(*) FROM t WHERE x >= 10 AND y != 'a''b' GROUP BY id;
<div class="a b" id='c'>&nbsp;&lt;hello&gt;<br/></div> <!-- comment -->
{"key": [1, 2.5, -3e10, true, null], "nested": {"a\\n": "\\u00e9"}}
https://example.org/a/b?c=d&e=%20f#g user.name+tag@example.co.uk C:\\Users\\x
#include <vector>~~int main() {~\treturn 0;~}~
\\begin{equation} E = mc^2 \\quad \\int_0^\\infty e^{-x^2} dx = \\frac{\\sqrt{\\pi}}{2}
1,234,567.89 $12.50 €100 50% 2024-01-31T12:34:56Z +1 (555) 010-9999 3.14159265358979
<|begin_of_text|>not special<|eot_id|> <|im_start|>user <s> </s> [INST] <0x0A>
"""
SENTENCES = [line.replace("~", "\n") for line in SENTENCES.splitlines()]

SPACES = [
    " ", "\t", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x85", "\u00a0", "\u1680", "\u2000", "\u2001",
    "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
    "\u2028", "\u2029", "\u202f", "\u205f", "\u3000",
]  # fmt: skip
# Not spaces to a pattern, but they look it.
ALMOST_SPACES = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u180e", "\x1c", "\x1f", "\x00", "\x7f"]
MARKS = ["\u0301", "\u0308", "\u0327", "\u0323", "\u20dd", "\ufe0f", "\u094d", "\u0e34", "\u05b8", "\u064e"]
EMOJI = list("😀🎉🔥❤🤖👍🏽🇺🇳👩💻🏳🌈⚡☃") + ["\u200d", "\ufe0f", "\U000e0067"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"]
WORDS = "the of and model Token größe naïve 東京 Москва שלום مرحبا हिन्दी ไทย x1 A_b f(x) ΣΑΣ ﬁn ǅ".split()

# Blocks whose characters are drawn at random.
SCRIPTS = [
    (0x21, 0x7E), (0xA1, 0x17F), (0x180, 0x2FF), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x58F),
    (0x591, 0x5F4), (0x600, 0x6FF), (0x900, 0xDFF), (0xE00, 0xFFF), (0x1000, 0x10FF), (0x1100, 0x11FF),
    (0x1200, 0x139F), (0x13A0, 0x16FF), (0x1780, 0x18AF), (0x1E00, 0x1FFF), (0x2010, 0x218F),
    (0x2190, 0x2BFF), (0x2C00, 0x2DDF), (0x2E80, 0x30FF), (0x3100, 0x33FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF), (0xF900, 0xFFEF),
    (0x10000, 0x10FFF), (0x11000, 0x12FFF), (0x16800, 0x18FFF), (0x1B000, 0x1D7FF),
    (0x1E000, 0x1EEFF), (0x1F000, 0x1FAFF), (0x20000, 0x2FA1D), (0xE0000, 0xE01EF),
]  # fmt: skip


def assigned(low, high):
    """The characters Python's Unicode knows: the other tokenizers differ only
    in what newer versions added."""
    return [chr(c) for c in range(low, high + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


def lines(seed=20, count=12000):
    """`count` lines of text and more."""
    rng = random.Random(seed)
    blocks = [block for block in (assigned(*script) for script in SCRIPTS) if block]
    everything = [c for block in blocks for c in block]

    def script_line():
        block = rng.choice(blocks)
        return "".join(rng.choice(block) if rng.random() < 0.85 else " " for _ in range(rng.randint(1, 40)))

    def mixed_line():
        return "".join(rng.choice(everything) for _ in range(rng.randint(1, 30)))

    def sentence_line():
        words = rng.choice(SENTENCES).split(" ") + rng.choice(SENTENCES).split(" ")
        rng.shuffle(words)
        gap = rng.choice([" ", " ", "  ", "\t", "\n", " \n ", "\u00a0", "\u3000"])
        return gap.join(words[: rng.randint(1, 25)])

    def cut_line():
        text = rng.choice(SENTENCES)
        begin = rng.randrange(len(text))
        return text[begin : begin + rng.randint(1, 60)]

    def spaces_line():
        parts = []
        for _ in range(rng.randint(1, 8)):
            parts.append(rng.choice(WORDS + ["", "1", "!", "."]))
            run = rng.choice(SPACES) * rng.choice([1, 1, 2, 3, 4, 8, 17])
            parts.append(run if rng.random() < 0.5 else "".join(rng.choices(SPACES, k=rng.randint(1, 6))))
        return "".join(parts) + rng.choice(["", rng.choice(WORDS)])

    def digits_line():
        numbers = ["".join(rng.choices("0123456789", k=rng.randint(1, 30))) for _ in range(rng.randint(1, 5))]
        return rng.choice([" ", ",", ".", "", "a", " +", "\n"]).join(numbers + rng.choices(["٣٤٥", "१२३", "½", "Ⅷ", "²"], k=1))

    def contraction_line():
        cased = lambda c: rng.choice([c, c.upper(), c.title(), c.swapcase(), c.replace("s", "\u017f")])  # noqa: E731
        return "".join(
            rng.choice(WORDS + ["", " ", "'", "''"]) + cased(rng.choice(CONTRACTIONS)) + rng.choice(["", " ", "x", "S", "1"])
            for _ in range(rng.randint(1, 8))
        )

    def run_line():
        char = rng.choice([rng.choice(everything), " ", "a", "0", "\n", "=", "-", "\t", ".", "é", "中", "😀", "\u0301"])
        return rng.choice(["", "x", " "]) + char * rng.choice([50, 100, 257, 1000]) + rng.choice(["", "y", " ", "\n"])

    def control_line():
        alphabet = [chr(c) for c in range(0x20)] + [chr(c) for c in range(0x7F, 0xA0)] + ALMOST_SPACES + WORDS
        return "".join(rng.choices(alphabet, k=rng.randint(1, 30)))

    def marks_line():
        return "".join(rng.choice(WORDS + EMOJI + [" "]) + rng.choice(MARKS + [""]) for _ in range(rng.randint(1, 20)))

    def emoji_line():
        return "".join(rng.choices(EMOJI, k=rng.randint(1, 25)))

    def code_line():
        tokens = ["{", "}", "();", "->", "::", "==", "!=", "&&", "//", "/*", "*/", "#", "\n    ", "\n\t\t", "  ", "if", "x_1",
                  "0xFF", '"', "'", "\\n", "<<", ">>", "...", "@", "$", "return", "camelCase", "SCREAMING_SNAKE", "1e-9"]  # fmt: skip
        return rng.choice(["", " "]).join(rng.choices(tokens, k=rng.randint(2, 40)))

    makers = [script_line, script_line, mixed_line, sentence_line, sentence_line, cut_line, spaces_line, spaces_line, digits_line,
              contraction_line, run_line, control_line, marks_line, emoji_line, code_line]  # fmt: skip
    out = ["", " ", "  ", "\n", "a", "'"] + SENTENCES + SPACES + ALMOST_SPACES
    out += everything[:: max(1, len(everything) // 500)]
    while len(out) < count:
        out.append(makers[len(out) % len(makers)]())
    return out


def broken_lines(seed=21, count=2000):
    """Bytes that are not UTF-8: stray, cut, overlong and surrogate ones."""
    rng = random.Random(seed)
    pieces = [b"\x80", b"\xbf", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\xff", b"\xfe", b"\xf8\x88\x80\x80\x80",
              b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xc1\xbf", b"\xe2\x28\xa1"]  # fmt: skip
    good = [w.encode() for w in WORDS] + [b" ", b"  ", b"\n", b"12", b"'s", "😀".encode()]
    out = []
    for _ in range(count):
        chosen = [rng.choice(pieces if rng.random() < 0.4 else good) for _ in range(rng.randint(1, 15))]
        out.append(b"".join(chosen))
    return out


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()))
