"""The parameters of well-known models, layer by layer, and the work of each layer: computed from their architecture."""
from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Layer:
    shapes: list[tuple[int, ...]]  # of its parameters
    work: int  # multiplications of the forward pass for an image


def convolution(inputs, outputs, kernel, side, vectors=1):
    """side: of the resulting image. vectors: a bias is one, the parameters of a batch normalisation are two."""
    return Layer([(outputs, inputs, kernel, kernel)] + [(outputs,)] * vectors, inputs * outputs * (kernel * side) ** 2)


def linear(inputs, outputs):
    return Layer([(outputs, inputs), (outputs,)], inputs * outputs)


def resnet(stages):
    """stages: the number of blocks of each (He et al. 2015, https://arxiv.org/abs/1512.03385). The first block of the
    second and later stages halves the image, in its 3x3 convolution."""
    layers, inputs = [convolution(3, 64, 7, 112, vectors=2)], 64
    for stage, blocks in enumerate(stages):
        width, side = 64 << stage, 56 >> stage
        for block in range(blocks):
            side_before = 2 * side if stage > 0 and block == 0 else side
            layers.append(convolution(inputs, width, 1, side_before, vectors=2))
            layers.append(convolution(width, width, 3, side, vectors=2))
            layers.append(convolution(width, 4 * width, 1, side, vectors=2))
            if block == 0:  # what goes past the block gets the shape of its result
                layers.append(convolution(inputs, 4 * width, 1, side, vectors=2))
            inputs = 4 * width
    return layers + [linear(inputs, 1000)]


def vgg(stages):
    """stages: channels and number of convolutions of each (Simonyan & Zisserman 2014,
    https://arxiv.org/abs/1409.1556). The image is halved after each."""
    layers, inputs = [], 3
    for stage, (width, count) in enumerate(stages):
        for _ in range(count):
            layers.append(convolution(inputs, width, 3, 224 >> stage))
            inputs = width
    return layers + [linear(inputs * 7 * 7, 4096), linear(4096, 4096), linear(4096, 1000)]


MODELS = {
    "resnet50": resnet([3, 4, 6, 3]),
    "resnet101": resnet([3, 4, 23, 3]),
    "vgg16": vgg([(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]),
    "tiny": [convolution(3, 16, 3, 32), convolution(16, 32, 3, 16), linear(32 * 16 * 16, 10)],
}


def work(name):
    return sum(layer.work for layer in MODELS[name])


def describe(name):
    sizes = [math.prod(shape) for layer in MODELS[name] for shape in layer.shapes]
    millions = work(name) / 1e6
    return f"{name}: {len(sizes)} gradients, {sum(sizes):,} parameters, {millions:,.0f}M multiplications an image"


def share_out(name, units):
    """Shares units of computation out to the layers, by their work. For each layer: the shapes of its parameters, the
    units of its forward pass, and those of its backward pass, which takes twice as long."""
    layers, total, done, given = MODELS[name], 3 * work(name), 0, 0
    shares = []
    for part in [layer.work * times for layer in layers for times in (1, 2)]:
        done += part
        shares.append(round(units * done / total) - given)
        given += shares[-1]
    return list(zip([layer.shapes for layer in layers], shares[::2], shares[1::2]))
