package io.gpunvme.core.path.set;

import io.gpunvme.core.path.DataPath;

/**
 * One of several.
 *
 * @param name in messages
 * @param path closed with the set
 */
public record Member(String name, DataPath path) {}
