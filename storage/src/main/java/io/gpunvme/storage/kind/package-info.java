/**
 * Sources as dictionaries: kinds of things by name or number, each an array of elements of one size
 * in a stretch of the source, and reads by (kind, index, length). Turns such reads into byte ranges
 * for {@code io.gpunvme.storage.plan}; it reads only the description of the kinds.
 */
@NullMarked
package io.gpunvme.storage.kind;

import org.jspecify.annotations.NullMarked;
