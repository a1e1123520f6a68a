"""The three questions of European guidance: singling out, linkability, inference.

Opinion 05/2014 of the Article 29 Working Party asks of a release whether one can still single out
a person, link records about a person, or infer something about a person. Giomi et al. turn each
into an attack that is run three times: on people in the table (main), with guesses that do not look
at the target (baseline), and on people not in the table (control).

A release is boxes in places, as everywhere in `metrics`: an exact number is a point, a category c
the places from c to c + 1, a suppressed cell the whole domain. Distances are Gower's, the sum over
axes of |x - u| over the range, or 0 and 1 for categories, in expectation over a box. People are
places too: the code of a category, NaN where the attacker does not know.

All three take these arguments: `lower` and `upper`, the ends of the released boxes by axes;
`discrete`, which axes are categories; `people`, the original records, and `control`, people not in
the table, on the same axes; `rng`, which draws targets, predicates and ties; `attacks`, how many
people or predicates at most; and `confidence`, that of all intervals.

Unlike anonymeter 1.1, which these follow: records of people are not made distinct before they are
counted, since two people with equal values are not singled out; a rate is over the guesses that
could be made; ties between nearest records are drawn, not left to the sort; the tolerance for a
number is relative to its size, so a negative guess is not always right; the baseline of
inference draws any released record, where anonymeter's reads the target's own row if both tables
have the same row labels; and all randomness comes from `rng`.

References:
    Giomi, Boenisch, Wehmeyer and Tasnádi, "A unified framework for quantifying privacy risk in
    synthetic data", PoPETs 2023(2). doi:10.56553/popets-2023-0055
    Article 29 Data Protection Working Party, "Opinion 05/2014 on anonymisation techniques", WP216.
    Gower, "A general coefficient of similarity and some of its properties", Biometrics 27 (1971).
    doi:10.2307/2528823
    Cohen and Nissim, "Towards formalizing the GDPR's notion of singling out", PNAS 117 (2020).
    doi:10.1073/pnas.1914598117
"""
