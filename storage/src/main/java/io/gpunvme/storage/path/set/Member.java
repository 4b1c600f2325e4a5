package io.gpunvme.storage.path.set;

import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.DataPath;

/**
 * One of several.
 *
 * @param name in messages
 * @param path closed with the set
 * @param home where threads are while they serve it
 */
public record Member(String name, DataPath path, NumaHome home) {}
