package io.gpunvme.tools.machine;

/**
 * A device node, and what this process may do with it.
 *
 * @param path {@code /dev/vfio/12}
 * @param there whether it exists
 * @param open whether this process may open it for reading and writing, as far as its owner, mode
 *     and access control list say
 */
public record DeviceNode(String path, boolean there, boolean open) {}
