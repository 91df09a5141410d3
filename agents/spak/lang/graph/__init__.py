"""The task graph of a spec: read from the text, laid out, drawn."""

from spak.lang.graph.colours import STYLE
from spak.lang.graph.compare import graph_difference
from spak.lang.graph.draw import describe, node_id, route_id, to_svg
from spak.lang.graph.glyphs import STATES
from spak.lang.graph.layout import Layout, PlacedNode, Route, lay_out
from spak.lang.graph.model import Change, Edge, Graph, Kind, Node, State, graph_of
from spak.lang.graph.write import to_dot, to_json, to_mermaid

__all__ = [
    "STATES",
    "STYLE",
    "Change",
    "Edge",
    "Graph",
    "Kind",
    "Layout",
    "Node",
    "PlacedNode",
    "Route",
    "State",
    "describe",
    "graph_difference",
    "graph_of",
    "lay_out",
    "node_id",
    "route_id",
    "to_dot",
    "to_json",
    "to_mermaid",
    "to_svg",
]
