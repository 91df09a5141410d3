"""The `gpu` launcher: the docker launcher's container with one NVIDIA device in it.

The engine is asked for the device in the way of `docker run --gpus 1`; NVIDIA's container toolkit on the host
puts it and the driver's libraries into the container. Nothing here chooses among devices or shares one: a
worker of a gpu queue runs one job at a time. It was tested up to the engine's being asked, not on a device.
"""

from __future__ import annotations

from typing import Any

from spak.lang.catalog import NamedEntry
from spak.sandbox.docker import GPU_IMAGE, Docker

NO_TOOLKIT = "could not select device driver"
"""What an engine without NVIDIA's container toolkit says."""


class Gpu(Docker):
    """Docker with the GPUs of this machine."""

    entry = NamedEntry("gpu", "a hardened container with one NVIDIA device, no network", rank=2)
    image_name = GPU_IMAGE

    def host_config(self) -> dict[str, Any]:
        """One device, whichever the engine gives."""
        return {
            **super().host_config(),
            "DeviceRequests": [
                {"Driver": "", "Count": 1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
            ],
        }

    def probe(self) -> str:
        fault = super().probe()
        if NO_TOOLKIT in fault:
            reason = fault.partition("; to fix: ")[0]
            return f"{reason}; to fix: install NVIDIA's container toolkit and restart the engine"
        return fault
