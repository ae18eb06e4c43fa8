"""
Kernel PCA: components, noise, unusual digits
=============================================

How many components do noisy digits have? What do they look like without the noise? Which digits are
unusual? Noise is added to every pixel of scikit-learn's digits. The model is fitted to 600 digits,
and noise is removed from others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from muhat import ComponentMapDisplay, ComponentsDisplay, KernelPCA

rng = np.random.default_rng(0)
digits = load_digits()
order = rng.permutation(len(digits.data))
clean, labels = digits.data[order] / 16, digits.target[order].astype(str)
noisy = clean + 0.25 * rng.normal(size=clean.shape)
fitted, new = slice(0, 600), slice(600, None)

# %%
# The number of components is the smallest that separates signal from noise in left-out rows.
pca = KernelPCA("loo").fit(noisy[fitted])
choice = pca.choose_components()
print(f"{pca.n_components_} components; noise of SD {choice.noise_sd:.2f} (true: 0.25)")

ComponentsDisplay.from_choice(pca).plot()
ComponentMapDisplay.from_estimator(pca, noisy[fitted], labels[fitted]).plot()

# %%
# ``denoise`` removes noise that is independent between columns. It also works with more components:
# regularisation removes the noise that they add.
for name, model in {"loo": pca, "40": KernelPCA(40).fit(noisy[fitted])}.items():
    error = ((model.denoise(noisy[new]) - clean[new]) ** 2).mean()
    before = ((noisy[new] - clean[new]) ** 2).mean()
    print(f"components = {name}: mean squared error {error:.4f}, {before:.4f} before")

denoised = pca.denoise(noisy[new][:8])
fig, axes = plt.subplots(3, 8, figsize=(8, 3.2), layout="constrained")
rows = {"noisy": noisy[new][:8], "denoised": denoised, "true": clean[new][:8]}
for line, (name, images) in zip(axes, rows.items(), strict=True):
    line[0].set_title(name, loc="left", fontsize="small")
    for ax, image in zip(line, images, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.axis("off")

# %%
# Fitted to sevens only, reconstruction errors show which digits are not sevens.
sevens = KernelPCA("loo").fit(noisy[fitted][labels[fitted] == "7"])
p = sevens.novelty_p_values(noisy[new])
is_seven = labels[new] == "7"
print(f"p ≤ 0.05: {100 * (p[is_seven] <= 0.05).mean():.0f} % of new sevens,", end=" ")
print(f"{100 * (p[~is_seven] <= 0.05).mean():.0f} % of other digits")
