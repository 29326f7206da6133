"""Stands in for torch where a reward function makes a tensor of its rewards."""

float = "float"


class Tensor(list):
    def mean(self):
        return sum(self) / len(self)

    def tolist(self):
        return list(self)


def tensor(values, dtype=None):
    return Tensor(values)
