"""Context-free grammars: from a text in Lark's form or in GBNF's to the machine.

    reader -> lowering -> folding -> recursion -> emission

The text is read into definitions, these become rules over automata, what is regular is folded into larger automata, left and
tail recursion become loops, and the rest is written as states and calls. Each step works on `expressions` and can be read alone.
"""
