/**
 * Weights of models into an accelerator's memory: which tensors or parts of them, in what order,
 * with how much memory, planned before anything is read. Layers that are made of tensors, too, and
 * which of them stay. Formats are in {@code format}; {@code io.gpunvme.storage} moves the bytes.
 */
@org.jspecify.annotations.NullMarked
package io.gpunvme.models;
