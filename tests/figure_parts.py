"""What is seen of a figure, for the tests of all figures."""


def texts_of(figure):
    """Every text that is seen, laid out."""
    figure.draw_without_rendering()
    texts = [text for legend in legends_of(figure) for text in legend.get_texts()]
    for ax in panels_of(figure):
        texts += [*ax.texts, ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [tick.label1 for tick in ticks if tick.label1.get_visible()]
    return [text for text in texts if text.get_text() and text.get_visible()]


def panels_of(figure):
    return [ax for ax in figure.axes if ax.get_visible()]


def legends_of(figure):
    return [*figure.legends, *(ax.get_legend() for ax in panels_of(figure) if ax.get_legend())]
