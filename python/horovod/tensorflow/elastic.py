from ddl.tensorflow.elastic import *
