package io.gpunvme.storage.path.set;

import io.gpunvme.storage.path.DataPath;

/**
 * One of several.
 *
 * @param name in messages
 * @param path closed with the set
 */
public record Member(String name, DataPath path) {}
