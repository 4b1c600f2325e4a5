/**
 * Graphs that are larger than memory: images of them, and programs whose edges kernels read from an
 * SSD.
 *
 * <p>In: the image ({@code GraphHeader}), what images are made of ({@code EdgeSource}, {@code
 * GraphBuilder}), the programs of a GPU ({@code GraphProgram}) and the same of the CPU, with which
 * they are compared ({@code CpuPrograms}). Out: how commands print, and the page cache below the
 * kernels' arrays ({@code gpu.queue}).
 */
@NullMarked
package io.gpunvme.tools.graph;

import org.jspecify.annotations.NullMarked;
