"""Groups words that are anagrams of each other."""


def groups(words):
    """Lists of the words that are made of the same letters, each in order of first appearance."""
    found = []
    for word in words:
        for group in found:
            if sorted(group[0]) == sorted(word):
                group.append(word)
                break
        else:
            found.append([word])
    return found
