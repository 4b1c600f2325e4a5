/**
 * Model files made on the spot, so that a demonstration or benchmark needs no download.
 *
 * <p>In: writing a valid safetensors file of a wanted size. Out: reading such files, and anything
 * that moves them.
 */
@NullMarked
package io.gpunvme.tools.sample;

import org.jspecify.annotations.NullMarked;
