// What every page can do: theme without a round trip, menus that close, the palette, keys. Pages work without it.
