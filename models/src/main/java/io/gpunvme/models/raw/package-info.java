/**
 * A model on a raw namespace, partition or set, without a file system: a superblock, the tensors,
 * an index with their checksums (docs/raw-models.md). What is there and where is here, read and
 * laid out; how tensors travel is {@code core.weights}'s business.
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.models.raw;
