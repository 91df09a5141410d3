"""Counts the inversions of a list: pairs in which the greater number comes first."""

# SPAK-EVOLVE-BEGIN inversions
def inversions(numbers):
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] > numbers[j]:
                count += 1
    return count
# SPAK-EVOLVE-END


def answers(lists):
    """The inversions of each list."""
    return [inversions(numbers) for numbers in lists]
