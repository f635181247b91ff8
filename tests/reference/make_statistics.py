"""Reference values for tests/trainers/sweep/test_statistics.c: NumPy for means and standard deviations, SciPy for
Student's t and Welch's interval. Prints C."""
import numpy as np
from scipy import stats

a = np.array([1.376, 1.402, 1.381, 1.395, 1.369])
b = np.array([0.043, 0.051, 0.0405, 0.047])

for name, x in (("a", a), ("b", b)):
    print(f"/* {name} */ {x.mean():.17g}, {x.std(ddof=1):.17g}, {x.std(ddof=1) / np.sqrt(len(x)):.17g}")
for df in (0.7, 1, 2, 3.3, 10, 29, 1e3, 1e4):
    print(f"{{{df:g}, {stats.t.ppf(0.975, df):.17g}, {stats.t.ppf(0.6, df):.17g}}},")
for x, y in ((a, b), (a[:2], b), (a, a + 0.01)):
    va, vb = x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)
    df = (va + vb) ** 2 / (va**2 / (len(x) - 1) + vb**2 / (len(y) - 1))
    d, half = x.mean() - y.mean(), stats.t.ppf(0.975, df) * np.sqrt(va + vb)
    print(f"{{{d:.17g}, {df:.17g}, {d - half:.17g}, {d + half:.17g}}},")
