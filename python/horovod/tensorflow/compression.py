from ddl.tensorflow.compression import Compression, Compressor, FP16Compressor, NoneCompressor
